// Command reload measures programs that restart workloads when their ConfigMaps
// and Secrets change: Lockstep, and any other whose command line it is given.
//
// Every pair of a scenario and a program gets a control plane of its own, so that
// nothing is left over from the one before. The program is started against it as
// a user of its own, so that the API server's audit log tells which requests are
// the program's. What is judged is the state of the world, not the program's own
// counters: a workload is stale when a source was written after the workload's
// pod template was, both by the API server's own order of writes.
package main
