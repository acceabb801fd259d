// Package server runs the parts of a long-lived process: manager, leader
// election, probes and metrics. It is wiring and knows no capability; those
// arrive as setup functions.
package server
