// Package run assembles the controller: its parts, their start order, the permissions they need
// and when they are ready. It doesn't read flags; a command line provides Options. Advice to the
// user may name flags. The drop-ins for predecessors assemble other controllers from the same
// parts, so a few pieces are exported.
package run
