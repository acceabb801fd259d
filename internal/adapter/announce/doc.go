// Package announce knows how to notify users: by events on the affected objects.
package announce
