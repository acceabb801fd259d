package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-dev/lockstep/internal/adapter/imagewatch"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/adapter/webhook"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/dropin/kubeimagedeployer"
	"github.com/lockstep-dev/lockstep/internal/run"
)

// imagesOptions are the flags about images.
type imagesOptions struct {
	follow       bool
	interval     time.Duration
	ttl          time.Duration
	platforms    platformFlags
	pullSecrets  []string
	dockerConfig string
	plainHTTP    []string
	authorities  []string
	identities   bool
	// dockerConfigFor and identitiesFor are the namespaces that the controller's own credentials
	// serve. Commands use those of their user for all.
	dockerConfigFor []string
	identitiesFor   []string
	reads           readOptions
	// webhook is the address for notifications; empty disables it.
	webhook       string
	webhookSecret string
	// elsewhere means that the files in flags are in a container, and aren't read.
	elsewhere bool
}

// platformFlags are the platforms that an image must have, and the one whose image is pinned where
// the workload names none.
type platformFlags struct {
	needed   []string
	standard string
}

func (o *imagesOptions) bind(fs *pflag.FlagSet) {
	fs.BoolVar(&o.follow, "images", false, "follow images (annotations image.lockstep.dev/CONTAINER); needs additional permissions, which charts/lockstep grants with images.enabled")
	fs.DurationVar(&o.interval, "image-interval", imagewatch.DefaultInterval, "how often to query the registry for each image")
	fs.DurationVar(&o.ttl, "image-ttl", 0, "how long a registry response is reused for other workloads (default --image-interval)")
	o.bindPlatforms(fs)
	fs.StringSliceVar(&o.pullSecrets, "image-pull-secrets", nil, "names of the pull secrets that the controller may read, in any watched namespace (default all that pods and service accounts name)")
	fs.StringVar(&o.webhook, "image-webhook-addr", "", "address at which registries report pushes, such as :8082 (default none); needs --image-webhook-secret-file")
	fs.StringVar(&o.webhookSecret, "image-webhook-secret-file", "", "a file with the senders' secrets, one per line; re-read when it changes")
	o.reads.bind(fs)
	o.bindRegistries(fs)
	fs.Lookup("docker-config").Usage += "; serves only --docker-config-namespaces"
	fs.StringSliceVar(&o.dockerConfigFor, "docker-config-namespaces", nil, "namespaces whose workloads may use the credentials of --docker-config, * for all (default none)")
	fs.StringSliceVar(&o.identitiesFor, "cloud-identity-namespaces", []string{run.EveryNamespace}, "namespaces whose workloads may use the controller's cloud identity, * for all")
}

func (o *imagesOptions) bindPlatforms(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.platforms.needed, "image-platforms", nil, "platforms that an image must include, such as linux/amd64,linux/arm64 (default those of the nodes)")
	o.bindDefaultPlatform(fs)
}

func (o *imagesOptions) bindDefaultPlatform(fs *pflag.FlagSet) {
	fs.StringVar(&o.platforms.standard, "image-default-platform", "", "platform to pin if neither an annotation nor the node selector names one, such as linux/amd64 (default the index, for all platforms)")
}

// bindRegistries adds the flags for registry connections.
func (o *imagesOptions) bindRegistries(fs *pflag.FlagSet) {
	fs.StringVar(&o.dockerConfig, "docker-config", "", "Docker configuration file with credentials, tried after the pods' pull secrets; re-read when it changes")
	fs.StringArrayVar(&o.plainHTTP, "plain-http-registry", nil, "a registry to query without TLS, as HOST:PORT; may be repeated")
	fs.StringArrayVar(&o.authorities, "registry-ca", nil, "additional trusted certificates for a registry, as HOST:PORT=FILE (PEM); may be repeated")
	fs.BoolVar(&o.identities, "cloud-identity", true, "get credentials for AWS, Google and Azure registries from the cloud")
}

// Validate lists everything that is wrong with the options.
func (o *imagesOptions) Validate() error {
	var wrong []error
	if o.interval < time.Second {
		wrong = append(wrong, fmt.Errorf("--image-interval %s: need at least 1s", o.interval))
	}
	if o.ttl < 0 {
		wrong = append(wrong, fmt.Errorf("--image-ttl %s: must not be negative", o.ttl))
	}
	if len(o.pullSecrets) > 0 && !o.follow {
		wrong = append(wrong, errors.New("--image-pull-secrets: needs --images"))
	}
	if o.platforms.standard != "" && !o.follow {
		wrong = append(wrong, errors.New("--image-default-platform: needs --images"))
	}
	if o.reads.reads(kubeimagedeployer.DefaultKey) && !o.follow {
		wrong = append(wrong, fmt.Errorf("--read-annotations=%s: needs --images", kubeimagedeployer.DefaultKey))
	}
	if len(o.dockerConfigFor) > 0 && o.dockerConfig == "" {
		wrong = append(wrong, errors.New("--docker-config-namespaces: needs --docker-config"))
	}
	wrong = append(wrong, checkNamespaces("--docker-config-namespaces", o.dockerConfigFor), checkNamespaces("--cloud-identity-namespaces", o.identitiesFor))
	_, platforms := o.wantedPlatforms()
	_, hosts := o.registries()
	_, reads := o.words(settings.Defaults{})
	return errors.Join(append(wrong, platforms, hosts, reads, o.validateWebhook())...)
}

// checkNamespaces accepts names of namespaces, and a star for all.
func checkNamespaces(flag string, names []string) error {
	for _, name := range names {
		if wrong := validation.IsDNS1123Label(name); name != run.EveryNamespace && len(wrong) > 0 {
			return fmt.Errorf("%s %q: %s; %s stands for all", flag, name, wrong[0], run.EveryNamespace)
		}
	}
	return nil
}

func (o *imagesOptions) validateWebhook() error {
	switch {
	case o.webhook == "" && o.webhookSecret == "":
		return nil
	case o.webhook == "":
		return errors.New("--image-webhook-secret-file: needs --image-webhook-addr")
	case !o.follow:
		return errors.New("--image-webhook-addr: needs --images")
	case o.webhookSecret == "":
		return errors.New("--image-webhook-addr: needs --image-webhook-secret-file, because anyone could send notifications")
	case o.elsewhere:
		return nil
	}
	if _, err := webhook.ReadSecrets(o.webhookSecret); err != nil {
		return fmt.Errorf("--image-webhook-secret-file: %w", err)
	}
	return nil
}

// words is our vocabulary with the default platform, and those of other tools.
func (o *imagesOptions) words(defaults settings.Defaults) (settings.Native, error) {
	defaults.Platform = o.platforms.standard
	if _, err := registry.ParsePlatform(o.platforms.standard); o.platforms.standard != "" && err != nil {
		return settings.Native{}, fmt.Errorf("--image-default-platform: %w", err)
	}
	return o.reads.words(defaults)
}

func (o *imagesOptions) wantedPlatforms() ([]v1.Platform, error) {
	var all []v1.Platform
	for _, text := range o.platforms.needed {
		platform, err := registry.ParsePlatform(text)
		if err != nil {
			return nil, fmt.Errorf("--image-platforms: %w", err)
		}
		all = append(all, platform)
	}
	return all, nil
}

// options converts the flags.
func (o *imagesOptions) options() (run.Images, error) {
	platforms, wrong := o.wantedPlatforms()
	registries, err := o.registries()
	registries.DockerConfigFor, registries.CloudIdentityFor = o.dockerConfigFor, o.identitiesFor
	return run.Images{
		Enabled: o.follow, Interval: o.interval, TTL: o.ttl, Platforms: platforms, PullSecrets: o.pullSecrets, Registries: registries,
		Webhook: run.Webhook{Addr: o.webhook, SecretFile: o.webhookSecret},
	}, errors.Join(wrong, err)
}

// registries configure connections to registries, with the credentials for all namespaces.
func (o *imagesOptions) registries() (run.Registries, error) {
	hosts, err := o.hosts()
	if o.dockerConfig != "" && !o.elsewhere {
		if _, missing := os.Stat(o.dockerConfig); missing != nil {
			err = errors.Join(err, fmt.Errorf("--docker-config: %w", missing))
		}
	}
	all := run.Namespaces{run.EveryNamespace}
	return run.Registries{Hosts: hosts, DockerConfig: o.dockerConfig, DockerConfigFor: all, CloudIdentity: o.identities, CloudIdentityFor: all}, err
}

// hosts are the registries that need special connection settings.
func (o *imagesOptions) hosts() (map[string]registry.Host, error) {
	all := map[string]registry.Host{}
	for _, host := range o.plainHTTP {
		all[host] = registry.Host{PlainHTTP: true}
	}
	for _, text := range o.authorities {
		host, file, found := strings.Cut(text, "=")
		if !found || host == "" || file == "" {
			return nil, fmt.Errorf("--registry-ca %q: want HOST:PORT=FILE", text)
		}
		if o.elsewhere {
			continue
		}
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--registry-ca: %w", err)
		}
		trusted := all[host]
		trusted.CA = append(trusted.CA, pem...)
		all[host] = trusted
	}
	return all, nil
}
