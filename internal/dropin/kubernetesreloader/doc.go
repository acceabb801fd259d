// Package kubernetesreloader knows the command line of kubernetes-reloader and
// turns it into options of ours. It has no behaviour of its own.
//
// The original read its arguments with yargs: --name=value or --name value, in
// kebab case or camel case; flags that it did not know were accepted, and array
// flags took every value up to the next flag.
package kubernetesreloader
