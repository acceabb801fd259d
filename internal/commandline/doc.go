// Package commandline knows the conventions that the command lines of both programs share: error
// messages, the version format, the names of kinds, and Lockstep's environment variables.
package commandline
