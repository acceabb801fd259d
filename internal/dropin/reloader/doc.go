// Package reloader replaces Stakater Reloader. It knows its command line, environment, log,
// alerts, events and meta-info ConfigMap, and assembles the parts around internal/feature/reloader.
package reloader
