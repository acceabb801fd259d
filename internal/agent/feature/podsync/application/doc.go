// Package application knows how an application is checked, told to reload and
// asked whether it did: over HTTP, by a signal, by a command, on a socket, or by
// restarting it.
package application
