package run

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/lockstep-dev/lockstep/internal/adapter/imagewatch"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/nodes"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry/identity"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/adapter/webhook"
	"github.com/lockstep-dev/lockstep/internal/feature/images"
	"github.com/lockstep-dev/lockstep/internal/listener"
)

// Registries configure connections to registries, and credentials besides those of pods.
type Registries struct {
	Hosts map[string]registry.Host
	// DockerConfig is a file with credentials, empty for none, and DockerConfigFor the namespaces
	// whose workloads may use them.
	DockerConfig    string
	DockerConfigFor Namespaces
	// CloudIdentity gets credentials for their registries from AWS, Google and Azure, for the
	// workloads of CloudIdentityFor.
	CloudIdentity    bool
	CloudIdentityFor Namespaces
}

// Namespaces are names of namespaces; EveryNamespace stands for all.
type Namespaces []string

// EveryNamespace stands for all namespaces.
const EveryNamespace = "*"

// include reports whether a namespace is one of them.
func (n Namespaces) include(namespace string) bool {
	return slices.Contains(n, namespace) || slices.Contains(n, EveryNamespace)
}

// Credentials are those of the pods, then those of the controller, as far as they are for the
// workload's namespace. Anyone who may annotate a workload could otherwise learn the tags of private
// repositories, and run their images.
func (o Registries) Credentials(pods *keychain.Pods) func(*kube.Workload) (keychain.Source, string) {
	file, clouds := keychain.File{Path: o.DockerConfig, Named: true}, identity.All()
	return func(w *kube.Workload) (keychain.Source, string) {
		namespace := w.Key.Namespace
		account := keychain.Account{Namespace: namespace, ServiceAccount: w.Pull.ServiceAccount, Secrets: w.Pull.Secrets}
		chain := keychain.Chain{pods.For(account)}
		switch {
		case o.DockerConfig == "":
		case o.DockerConfigFor.include(namespace):
			chain = append(chain, file)
		default:
			chain = append(chain, keychain.Withheld{Why: withheld("in --docker-config", namespace, "--docker-config-namespaces", "images.dockerConfigNamespaces")})
		}
		switch {
		case !o.CloudIdentity:
		case o.CloudIdentityFor.include(namespace):
			chain = append(chain, clouds...)
		default:
			chain = append(chain, keychain.Withheld{
				For: identity.Serve, Why: withheld("of its cloud identity", namespace, "--cloud-identity-namespaces", "images.cloudIdentityNamespaces"),
			})
		}
		return chain, account.String()
	}
}

func withheld(which, namespace, flag, value string) string {
	return fmt.Sprintf("namespace %s isn't allowed to use the controller's credentials %s: an administrator can allow it with %s (in the chart %s)", namespace, which, flag, value)
}

// addImages makes the family of images. Only the leader queries registries.
func (p *parts) addImages(mgr ctrl.Manager) (*images.Inputs, error) {
	o := &p.options.Images
	metrics := images.NewMetrics(p.options.Server.Metrics, p.options.Now)
	resolver := imagewatch.New(imagewatch.Options{
		Registries: registry.Options{Hosts: o.Registries.Hosts, UserAgent: "lockstep/" + p.options.Version, Observe: metrics.Observe, Forgotten: metrics.Forgotten},
		Interval:   o.Interval, TTL: o.TTL, Checked: images.Checked(metrics, p.log, p.options.Now), Exceeded: metrics.Exceeded,
	})
	if o.Registries.DockerConfig != "" && len(o.Registries.DockerConfigFor) == 0 {
		p.log.Info("no namespace uses the credentials in --docker-config: list namespaces with --docker-config-namespaces")
	}
	platforms, nodePlatforms := p.neededPlatforms()
	pulls := keychain.NewPods(p.client, o.Interval)
	pulls.Only = o.PullSecrets
	inputs := images.New(images.Options{
		Watch:       func(q imagewatch.Question, wake func()) images.Watch { return resolver.Watch(q, wake) },
		Credentials: o.Registries.Credentials(pulls),
		Platforms:   platforms, Shared: p.isShared, Now: p.options.Now, Exceeded: metrics.Exceeded,
	})
	p.options.Server.Metrics.MustRegister(images.NewCollector(inputs))
	if nodePlatforms != nil {
		nodePlatforms.Changed(inputs.WakeAll)
		if err := mgr.Add(manager.RunnableFunc(nodePlatforms.Run)); err != nil {
			return nil, err
		}
	}
	p.options.Server.Metrics.Page(nextChecksPath, nextChecks(inputs))
	if err := p.addWebhook(mgr, resolver, metrics); err != nil {
		return nil, err
	}
	return inputs, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		resolver.Run(ctx)
		return nil
	}))
}

// addWebhook makes every replica listen for notifications; those that do not lead refuse them.
func (p *parts) addWebhook(mgr ctrl.Manager, resolver *imagewatch.Resolver, metrics *images.Metrics) error {
	o := p.options.Images.Webhook
	if o.Addr == "" {
		return nil
	}
	open, err := listener.Address{Value: o.Addr, Setting: "--image-webhook-addr"}.Listen("push notifications")
	if err != nil {
		return err
	}
	p.log.Info("registries can report pushes", "address", open.Addr().String())
	leads := func() bool {
		select {
		case <-mgr.Elected():
			return true
		default:
			return false
		}
	}
	timeout := 2 * time.Second
	return mgr.Add(&manager.Server{
		Name: "image webhook", Listener: open, ShutdownTimeout: &timeout,
		Server: webhook.NewServer(webhook.Options{
			SecretFile: o.SecretFile, Leads: leads, Check: resolver.Check, Notified: metrics.Notified, Log: p.log,
		}),
	})
}

// neededPlatforms are those of the flags, or those of the nodes on which a workload may run.
// Without permission to list nodes, platforms aren't checked.
func (p *parts) neededPlatforms() (func(*kube.Workload) ([]v1.Platform, bool), *nodes.Nodes) {
	if fixed := p.options.Images.fixedPlatforms(p.options.Words.Defaults.Platform); fixed != nil {
		return fixed, nil
	}
	nodePlatforms := nodes.New(p.client, func(err error) {
		p.log.Error(advised(err), "cannot list nodes, so images aren't checked for the nodes' platforms; list platforms with --image-platforms")
	})
	return func(w *kube.Workload) ([]v1.Platform, bool) {
		all, known := nodePlatforms.Platforms()
		return platformsFor(w, all), known
	}, nodePlatforms
}

// fixedPlatforms are those of the flags, nil when those of the nodes are needed. An index needs
// the default platform, where the workload may run on such nodes.
func (o Images) fixedPlatforms(standard string) func(*kube.Workload) ([]v1.Platform, bool) {
	if len(o.Platforms) > 0 {
		return func(*kube.Workload) ([]v1.Platform, bool) { return o.Platforms, true }
	}
	platform, err := registry.ParsePlatform(standard)
	if err != nil {
		return nil
	}
	return func(w *kube.Workload) ([]v1.Platform, bool) {
		return platformsFor(w, []nodes.Platform{{OS: platform.OS, Architecture: platform.Architecture}}), true
	}
}

// platformsFor are the platforms of the nodes on which the workload may run.
func platformsFor(w *kube.Workload, available []nodes.Platform) []v1.Platform {
	var wanted []v1.Platform
	for _, n := range available {
		if w.Pull.Allows(n.OS, n.Architecture) {
			wanted = append(wanted, v1.Platform{OS: n.OS, Architecture: n.Architecture})
		}
	}
	return wanted
}
