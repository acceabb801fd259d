// Package identity knows how a program that runs in a cloud gets credentials for that cloud's
// registries: AWS ECR, Google Artifact Registry and gcr.io, Azure ACR.
//
// The cloud libraries determine the program's identity: from the environment, the pod's service
// account, or the machine. Tests use stand-ins for the token services; none of this has been
// tried in a cloud.
package identity
