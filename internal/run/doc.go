// Package run puts the controller together: which parts there are, in which order they start, which
// permissions they need and when they are ready. It reads no flags; a command line gives it Options.
// Predecessors put other controllers together from the same parts, so a few pieces are exported.
package run
