// Package identity knows how a program that runs in a cloud gets credentials for that
// cloud's registries: ECR of AWS, Artifact Registry and gcr.io of Google, ACR of Azure.
//
// Who the program is, the libraries of the clouds find out: from the environment, the
// service account of the pod, or the machine. Tests use stand-ins of the token services;
// none of this has been tried in a cloud.
package identity
