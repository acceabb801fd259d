// Package objectwatch knows how to follow ConfigMaps and Secrets through the
// API server at the smallest cost: a REST client with one type, no client set,
// and contents that are handed on the moment they are decoded.
//
// A watch is resumed where it ended, a list comes in pages, and a watch that
// shows no sign of life is torn down and reported. The sign of life does not
// depend on a change of an object: the server is asked to end every
// watch within half the deadline, so that a healthy one proves itself by being
// opened again.
package objectwatch
