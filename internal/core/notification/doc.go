// Package notification knows what registries send when an image was pushed: one row of a
// table for each format.
//
// A notification is only a reason to ask the registry. Nothing that it says of tags or
// digests is believed.
package notification
