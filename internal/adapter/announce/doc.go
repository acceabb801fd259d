// Package announce knows how people are told: by events on the objects that they are
// about.
package announce
