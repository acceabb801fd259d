package cli

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// scopeOptions select a command's workloads.
type scopeOptions struct {
	namespace string
	all       bool
	selector  string
	kinds     []string
}

// bindOne adds the flags of a command for one workload.
func (o *scopeOptions) bindOne(fs *pflag.FlagSet) {
	fs.StringVarP(&o.namespace, "namespace", "n", "", "namespace of the workload (default that of the kubeconfig's context)")
	fs.StringArrayVar(&o.kinds, "kind", nil, "a further kind of workload, as group/version/Kind=path.to.template; may be repeated")
}

// bindMany adds the flags of a command for many workloads.
func (o *scopeOptions) bindMany(fs *pflag.FlagSet) {
	o.bindOne(fs)
	fs.Lookup("namespace").Usage = "namespace of the workloads (default that of the kubeconfig's context)"
	fs.BoolVarP(&o.all, "all-namespaces", "A", false, "workloads of all namespaces")
	fs.StringVarP(&o.selector, "selector", "l", "", "only workloads with these labels, such as app=web")
}

// scope is the selection of the flags.
type scope struct {
	ask.Scope

	kinds []kube.Kind
}

func (o *scopeOptions) scope(k *kubeOptions) (scope, error) {
	kinds, err := allKinds(o.kinds)
	if err != nil {
		return scope{}, usageError{err}
	}
	selector, err := labels.Parse(o.selector)
	if err != nil {
		return scope{}, usageError{fmt.Errorf("--selector %q: %w", o.selector, err)}
	}
	s := scope{ask.Scope{Namespace: o.namespace, Selector: selector}, kinds}
	switch {
	case o.all: // as with kubectl, even beside --namespace
		s.Namespace = ""
	case s.Namespace == "":
		s.Namespace = k.namespace()
	}
	return s, nil
}

// target returns the named object, which may be a namespace, and a client to change it.
func (o *scopeOptions) target(k *kubeOptions, name string) (target, client.WithWatch, error) {
	t, is, err := namespaceNamed(name)
	if !is {
		t, err = parseTarget(name, cmp.Or(o.namespace, k.namespace()), o.kinds)
	}
	if err != nil {
		return target{}, nil, usageError{err}
	}
	c, err := k.client()
	return t, c, err
}

// oneWorkload accepts only the name of one workload.
func oneWorkload(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{errors.New("name one workload, such as deployment/web")}
	}
	return nil
}
