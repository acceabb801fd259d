package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/commandline"
)

// serviceAccountDir is where Kubernetes mounts a pod's own account.
const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

type kubeOptions struct {
	kubeconfig string
	context    string
}

func (o *kubeOptions) bind(flags *pflag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", commandline.KubeconfigUsage)
	flags.StringVar(&o.context, "context", "", "context of the kubeconfig (default its current one)")
}

// config finds the cluster. If there is none, the error lists where it searched.
func (o *kubeOptions) config() (*rest.Config, error) {
	loader, err := o.loader()
	if err != nil {
		return nil, clusterError{err}
	}
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) || errors.Is(err, rest.ErrNotInCluster) {
		return nil, clusterError{fmt.Errorf(
			"no cluster found: looked for --kubeconfig, $KUBECONFIG, %s and a service account in %s; pass --kubeconfig FILE or run in a pod",
			clientcmd.RecommendedHomeFile, serviceAccountDir)}
	}
	if err != nil {
		return nil, clusterError{fmt.Errorf("read the kubeconfig: %w", err)}
	}
	// No client-side throttle: the API server's own fairness works better, and a throttle of 5
	// requests a second makes a change for 50 workloads take 10 s.
	config.QPS = -1
	return config, nil
}

// pin keeps the context that is current now, even if another one becomes current later. In a pod
// there is none.
func (o *kubeOptions) pin() error {
	loader, err := o.loader()
	if err != nil {
		return clusterError{err}
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return clusterError{fmt.Errorf("read the kubeconfig: %w", err)}
	}
	o.context = cmp.Or(o.context, raw.CurrentContext)
	return nil
}

// client is for a command that reads or watches a few objects and ends.
func (o *kubeOptions) client() (client.WithWatch, error) {
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		return nil, clusterError{fmt.Errorf("make the client: %w", err)}
	}
	return c, nil
}

func (o *kubeOptions) loader() (clientcmd.ClientConfig, error) {
	files, err := commandline.Kubeconfig(o.kubeconfig, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: o.kubeconfig, Precedence: files}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.context}), nil
}

// namespace is the one that kubectl would use: the context's, the pod's own, or else default.
func (o *kubeOptions) namespace() string {
	if loader, err := o.loader(); err == nil {
		if ns, _, err := loader.Namespace(); err == nil {
			return ns
		}
	}
	return "default"
}

// ownNamespace is where the process keeps its own objects: the flag's value, else the pod's
// namespace, else lockstep-system.
func ownNamespace(flag string, lookup func(string) (string, bool)) string {
	if flag != "" {
		return flag
	}
	if ns, ok := lookup("POD_NAMESPACE"); ok && ns != "" {
		return ns
	}
	if ns, err := os.ReadFile(serviceAccountDir + "/namespace"); err == nil {
		return strings.TrimSpace(string(ns))
	}
	return "lockstep-system"
}
