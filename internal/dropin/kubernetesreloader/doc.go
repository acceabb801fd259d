// Package kubernetesreloader takes the place of kubernetes-reloader. It knows its command
// line, and puts the controller's parts together so that they do what the original did.
//
// The original read its arguments with yargs: --name=value or --name value, in
// kebab case or camel case; flags that it did not know were accepted, and array
// flags took every value up to the next flag.
package kubernetesreloader
