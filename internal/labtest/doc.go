// Package labtest starts the lab: a real Kubernetes control plane, built from
// source, on this machine's loopback interface.
//
// Tests, the demo and the benchmarks use it; the product never does. It knows
// programs, paths and kubeconfigs and doesn't link a Kubernetes client, so the
// lab's own command is compiled in seconds on a machine with an empty build cache.
//
// A test requests the control plane of its test run and a namespace:
//
//	cluster := labtest.Shared(t)
//	namespace := labtest.Namespace(t, cluster)
//	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig())
//
// A test that stops the API server starts its own control plane with [Private].
// Every process ends together with the process that started it, even when that
// one is killed.
package labtest
