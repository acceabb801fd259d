// Command reload measures programs that restart workloads when their ConfigMaps and Secrets
// change: Lockstep, and any other program by its command line.
//
// Every pair of a scenario and a program gets its own control plane, so nothing is left over
// from the previous one. The program has its own user, so the API server's audit log shows
// which requests are the program's. The state of the world is judged, not the program's own
// counters: a workload is stale when a source was written after the workload's pod template,
// by the API server's own order of writes.
package main
