// Package notice knows the messages that Lockstep sends to chat rooms, alert managers and
// webhooks: which target gets which message, what is joined into one, and its format.
package notice
