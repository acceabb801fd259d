// Package doctor knows what can be wrong with an installation and with the workloads that it
// follows. Gather reads the facts, and Decide, which is pure, says what follows from them and
// what to do.
package doctor
