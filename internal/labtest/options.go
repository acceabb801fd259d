package labtest

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// Component is an optional part of the lab next to the bare control plane.
type Component string

const (
	// KWOK creates a fake node on which scheduled pods become Running and Ready.
	KWOK Component = "kwok"
	// Node is a real node: kubelet, containerd and runc in namespaces of their own. It needs
	// root on Linux. It can't be combined with KWOK, which would treat its pods as fake ones.
	Node Component = "node"
	// ArgoRollouts serves the Rollout kind and runs its controller.
	ArgoRollouts Component = "argo-rollouts"
	// Registry stores images for pulling and listing.
	Registry Component = "registry"
	// SecureRegistry is another registry, with TLS and credentials like real ones.
	SecureRegistry Component = "registry-tls"
)

// Components lists every component.
func Components() []Component {
	return []Component{KWOK, ArgoRollouts, Registry, SecureRegistry, Node}
}

// ParseComponents parses a list such as "kwok,argo-rollouts". The empty text is the empty
// list.
func ParseComponents(text string) ([]Component, error) {
	var list []Component
	for name := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' }) {
		if !slices.Contains(Components(), Component(name)) {
			return nil, fmt.Errorf("unknown component %q; there are %s", name, joinComponents(Components()))
		}
		list = append(list, Component(name))
	}
	return list, nil
}

func joinComponents(list []Component) string {
	var names []string
	for _, c := range list {
		names = append(names, string(c))
	}
	return strings.Join(names, ",")
}

// Options describe the control plane to start. The zero value is etcd, API server and
// controller manager of the default Kubernetes release.
type Options struct {
	// Kubernetes is the release, 1.36 or 1.34; empty means 1.36. Components are built for 1.36
	// only, but run next to either; a real node does not.
	Kubernetes string
	// With names the components that run next to the control plane.
	With []Component
	// APIServerFlags are added after the lab's own API server flags.
	APIServerFlags []string
	// KubeletConfig is added to the real node's kubelet configuration: "syncFrequency: 1h\n".
	KubeletConfig string
	// Detached lets the control plane, once it is up, outlive this process, until
	// [Cluster.Stop] or [Run.End].
	Detached bool
	// Progress receives build progress; nil discards it.
	Progress io.Writer
	// Downloaded are programs to start instead of building them. Without a controller
	// manager among them the control plane starts without one, until
	// [Cluster.AddControllers].
	Downloaded *program.Downloaded
}

func (o Options) kubernetes() string {
	switch {
	case o.Downloaded != nil:
		return o.Downloaded.Release
	case o.Kubernetes == "":
		return program.DefaultKubernetes
	}
	return o.Kubernetes
}

func (o Options) progress() io.Writer {
	if o.Progress == nil {
		return io.Discard
	}
	return o.Progress
}

// Check reports options that can't be combined.
func (o Options) Check() error {
	if !slices.Contains(o.With, Node) {
		return nil
	}
	if slices.Contains(o.With, KWOK) {
		return errors.New("kwok would take the pods of a real node for fake ones: ask for one of the two")
	}
	if o.kubernetes() != program.DefaultKubernetes {
		return fmt.Errorf("a real node has the kubelet of Kubernetes %s, which may not be newer than the API server: it does not go with %s",
			program.DefaultKubernetes, o.kubernetes())
	}
	return nil
}

// components lists each component that runs next to the control plane once.
func (o Options) components() []Component {
	var list []Component
	for _, c := range o.With {
		if !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}

// Programs lists the programs that the options need and the lab builds.
func (o Options) Programs() []string {
	var names []string
	if o.Downloaded == nil {
		for _, name := range []string{program.Etcd, program.APIServer, program.ControllerManager} {
			names = append(names, program.ForKubernetes(name, o.kubernetes()))
		}
	}
	for _, c := range o.components() {
		names = append(names, c.programs()...)
	}
	return names
}

func (c Component) programs() []string {
	switch c {
	case KWOK:
		return []string{program.Scheduler, program.KWOK}
	case Node:
		return []string{program.Scheduler, program.Kubelet}
	case SecureRegistry:
		return []string{program.Registry}
	case ArgoRollouts, Registry:
	}
	return []string{string(c)}
}
