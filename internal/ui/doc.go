// Package ui serves the pages of "lockstep ui". It knows HTML, HTTP and who may open the pages;
// what they say comes from feature/ask.
package ui
