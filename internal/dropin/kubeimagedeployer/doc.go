// Package kubeimagedeployer takes the place of kube-image-deployer and of
// kube-image-deployer-cli. It knows their command lines, variables and annotations, and puts
// the controller's parts together so that they do what the originals did.
//
// Both read their arguments with Go's flag package: -name value, -name=value, and the same
// with two dashes. A variable that is not empty wins over its flag. The flags of the
// original had no effect, because it read their values before it parsed them; here they
// have.
package kubeimagedeployer
