package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/retryafter"
)

// serviceAccountDir is where Kubernetes mounts a pod's own account.
const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

type kubeOptions struct {
	kubeconfig string
	context    string
	user       userOptions
}

// userOptions are as whom a user's command reaches the cluster, and for how long it waits there.
type userOptions struct {
	as             string
	groups         []string
	token          string
	requestTimeout time.Duration
}

// The flags that others need to act as the same user.
const (
	asFlag             = "as"
	asGroupFlag        = "as-group"
	tokenFlag          = "token"
	requestTimeoutFlag = "request-timeout"
)

func (o *kubeOptions) bind(flags *pflag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", commandline.KubeconfigUsage)
	flags.StringVar(&o.context, "context", "", "kubeconfig context (default the current one)")
}

// bindUser adds the flags of a command that a user types. The controller doesn't have them: it acts
// as its own account, and watches for as long as it runs.
func (o *kubeOptions) bindUser(flags *pflag.FlagSet) {
	o.bind(flags)
	flags.StringVar(&o.user.as, asFlag, "", "user to act as, such as jane or system:serviceaccount:shop:deployer; needs permission to impersonate")
	flags.StringArrayVar(&o.user.groups, asGroupFlag, nil, "group to act as, with --as; may be repeated")
	flags.StringVar(&o.user.token, tokenFlag, "", "bearer token for the API server, instead of the kubeconfig's credentials; other users of this machine can see a command line, so prefer $LOCKSTEP_TOKEN")
	flags.DurationVar(&o.user.requestTimeout, requestTimeoutFlag, 0, "how long to wait for each API server response, such as 10s; 0 for no limit")
}

// apply changes as whom the requests are made. A token replaces the other credentials: the API server
// would prefer a client certificate to it.
func (o *userOptions) apply(config *rest.Config) error {
	switch {
	case o.requestTimeout < 0:
		return usageError{fmt.Errorf("--%s %s: must not be negative", requestTimeoutFlag, o.requestTimeout)}
	case o.as == "" && len(o.groups) > 0:
		return usageError{fmt.Errorf("--%s needs --%s: a group is added to a user", asGroupFlag, asFlag)}
	case o.as != "":
		config.Impersonate = rest.ImpersonationConfig{UserName: o.as, Groups: o.groups}
	}
	if o.requestTimeout > 0 {
		config.Timeout = o.requestTimeout
	}
	if o.token != "" {
		config.BearerToken, config.BearerTokenFile = o.token, ""
		config.Username, config.Password, config.AuthProvider, config.ExecProvider = "", "", nil, nil
		config.CertFile, config.KeyFile, config.CertData, config.KeyData = "", "", nil, nil
	}
	return nil
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
	config.Wrap(retryafter.InSeconds)
	return config, o.user.apply(config)
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

// isStill returns an error if the kubeconfig leads to another cluster than it did.
func (o *kubeOptions) isStill(before *rest.Config) error {
	now, err := o.config()
	if err != nil {
		return err
	}
	if now.Host != before.Host || now.CAFile != before.CAFile || !bytes.Equal(now.CAData, before.CAData) {
		return errors.New("the kubeconfig now refers to another cluster than when the pages were opened; start lockstep ui again")
	}
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

// controllerNamespace is where a user's command expects the controller. POD_NAMESPACE is the controller's own: other pods
// have one too, and it isn't that of the controller.
func controllerNamespace(flag string) string {
	return ownNamespace(flag, func(string) (string, bool) { return "", false })
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
