// Package labtest starts the lab: a real Kubernetes control plane, built from
// source, on this machine's loopback interface.
//
// Tests, the demo and the benchmarks use it; the product never does. It knows
// programs, paths and kubeconfigs and links no Kubernetes client, so that the
// lab's own command is compiled in seconds on a machine that has built nothing.
//
// A test asks for the control plane of its test run and for a namespace:
//
//	cluster := labtest.Shared(t)
//	namespace := labtest.Namespace(t, cluster)
//	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig())
//
// A test that takes the API server away starts a control plane of its own with
// [Private]. Everything that is started ends with the process that started it,
// even when that one is killed.
package labtest
