// Package notify knows how to send messages to the targets of a file: it queues them, and sends
// them in the background, with retries.
package notify
