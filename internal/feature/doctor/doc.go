// Package doctor finds problems of an installation and of the workloads that it follows.
// Gather reads the facts, and Decide, which is pure, derives the problems and what to do
// about them. It has no states: nothing is remembered between two runs.
package doctor
