// Package access knows how this process accesses the API server: the client, which errors are
// transient, which permissions are missing, and the installation key.
package access
