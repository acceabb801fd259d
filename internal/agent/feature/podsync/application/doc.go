// Package application knows how to check an application's files, notify the application and
// query whether it reloaded: over HTTP, by a signal, by a command, on a socket, or by
// restarting it.
package application
