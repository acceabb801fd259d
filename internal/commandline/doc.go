// Package commandline knows the style that the command lines of both programs share:
// how a mistake is told, what a version looks like, how kinds are called, and which
// variables of the environment are ours.
package commandline
