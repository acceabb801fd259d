// Package program knows which programs the lab can run and builds them from source.
//
// Each program comes from a build-only Go module under lab/ and is run, never linked. A
// built program is kept in the user's cache directory under a name that contains its version
// and a hash of everything else that determines its bytes, so a new clone on the same
// machine doesn't build it again.
package program

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The names of the programs, without the Kubernetes release that some of them
// exist for.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubelet           = "kubelet"
	ArgoRollouts      = "argo-rollouts"
	KWOK              = "kwok"
	Helm              = "helm"
	Helm3             = "helm3"
	Registry          = "registry"
	GitOps            = "gitops-agent"
	Kubectl           = "kubectl"
)

// DefaultKubernetes is the release that is used unless another is requested.
const DefaultKubernetes = "1.36"

// Program is one program of the lab.
type Program struct {
	Name    string // such as kube-apiserver
	Dir     string // the module that yields it, under lab/
	Module  string // the Go module whose version is the program's version
	Package string // its main package

	// FirstBuild is how long the first build takes on two cores, downloads
	// included, when the programs before it in the table have been built.
	FirstBuild time.Duration

	// Assets are patterns of files in the Go module that are kept next to the program.
	Assets []string
}

// All lists every program, those that a control plane needs first.
func All() []Program {
	const k8s, etcd, argo = "k8s.io/kubernetes", "go.etcd.io/etcd/server/v3", "github.com/argoproj/argo-rollouts"
	const kwok, helm, registry = "sigs.k8s.io/kwok", "helm.sh/helm/v4", "github.com/distribution/distribution/v3"
	const gitops, helm3 = "github.com/argoproj/gitops-engine", "helm.sh/helm/v3"
	crds := []string{"manifests/crds/*-crd.yaml"}
	stages := []string{"kustomize/stage/node/fast/*.yaml", "kustomize/stage/node/heartbeat-with-lease/*.yaml", "kustomize/stage/pod/fast/*.yaml"}
	return []Program{
		{Etcd, "kubernetes", etcd, etcd, time.Minute, nil},
		{APIServer, "kubernetes", k8s, k8s + "/cmd/kube-apiserver", 5 * time.Minute, nil},
		{ControllerManager, "kubernetes", k8s, k8s + "/cmd/kube-controller-manager", time.Minute, nil},
		{Scheduler, "kubernetes", k8s, k8s + "/cmd/kube-scheduler", 10 * time.Second, nil},
		{ArgoRollouts, "kubernetes", argo, argo + "/cmd/rollouts-controller", 3 * time.Minute, crds},
		{Kubelet, "kubernetes", k8s, k8s + "/cmd/kubelet", 2 * time.Minute, nil},
		{Kubectl, "kubernetes", k8s, k8s + "/cmd/kubectl", 30 * time.Second, nil},
		{KWOK, "kwok", kwok, kwok + "/cmd/kwok", 2 * time.Minute, stages},
		{Helm, "helm", helm, helm + "/cmd/helm", 3 * time.Minute, nil},
		{Registry, "registry", registry, registry + "/cmd/registry", 2 * time.Minute, nil},
		{GitOps, "gitops", gitops, gitops + "/agent", 3 * time.Minute, nil},
		{Helm3, "helm", helm3, helm3 + "/cmd/helm", 30 * time.Second, nil},
		{Etcd + "@1.34", "kubernetes-1.34", etcd, etcd, 30 * time.Second, nil},
		{APIServer + "@1.34", "kubernetes-1.34", k8s, k8s + "/cmd/kube-apiserver", 5 * time.Minute, nil},
		{ControllerManager + "@1.34", "kubernetes-1.34", k8s, k8s + "/cmd/kube-controller-manager", time.Minute, nil},
	}
}

// Find returns the program with a name, such as "kwok" or "kube-apiserver@1.34".
func Find(name string) (Program, error) {
	all := All()
	i := slices.IndexFunc(all, func(p Program) bool { return p.Name == name })
	if i < 0 {
		return Program{}, fmt.Errorf("unknown program %q; there are %s", name, strings.Join(names(all), ", "))
	}
	return all[i], nil
}

// ForKubernetes returns the name that a program has for a Kubernetes release.
func ForKubernetes(name, release string) string {
	if release == DefaultKubernetes {
		return name
	}
	return name + "@" + release
}

func names(programs []Program) []string {
	var list []string
	for _, p := range programs {
		list = append(list, p.Name)
	}
	return list
}
