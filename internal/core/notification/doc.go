// Package notification parses the notifications that registries send when an image was
// pushed: one row of a table for each format.
//
// A notification is only a reason to query the registry. Its tags and digests aren't
// trusted.
package notification
