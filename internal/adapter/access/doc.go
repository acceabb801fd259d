// Package access knows how this process reaches the API server: the client, which
// errors pass, which permissions are missing, and the key of the installation.
package access
