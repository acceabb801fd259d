// Package kubeimagedeployer replaces kube-image-deployer and kube-image-deployer-cli. It knows
// their command lines, variables and annotations, and assembles the controller's parts so they
// behave like the originals.
//
// Both parse their arguments with Go's flag package: -name value, -name=value, and the same with
// two dashes. A variable that is not empty wins over its flag. The flags of the original had no
// effect, because it read their values before it parsed them; here they work.
package kubeimagedeployer
