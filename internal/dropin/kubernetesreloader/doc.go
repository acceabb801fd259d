// Package kubernetesreloader replaces kubernetes-reloader. It knows its command line, and
// assembles the controller's parts so they behave like the original.
//
// The original parsed its arguments with yargs: --name=value or --name value, in kebab case or
// camel case; it accepted unknown flags, and array flags took every value up to the next flag.
package kubernetesreloader
