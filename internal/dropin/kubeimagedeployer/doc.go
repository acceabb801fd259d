// Package kubeimagedeployer knows the command lines, the variables and the annotations of
// kube-image-deployer and of kube-image-deployer-cli, and turns them into options and
// requests of ours. It has no behaviour of its own.
//
// Both read their arguments with Go's flag package: -name value, -name=value, and the same
// with two dashes. A variable that is not empty wins over its flag. The flags of the
// original had no effect, because it read their values before it parsed them; here they
// have.
package kubeimagedeployer
