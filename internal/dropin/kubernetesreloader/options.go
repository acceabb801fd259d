package kubernetesreloader

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Name is the program's executable, and Short what it does.
const (
	Name  = "kubernetes-reloader"
	Short = "roll workloads when a ConfigMap or Secret changes"
)

// Options are the options of the original.
type Options struct {
	// Namespace is the only one that is watched; StateName is the ConfigMap with the digests.
	Namespace, StateName string
	// Quiet is the coalesce period.
	Quiet time.Duration
	// AlternativeConfigMap and AlternativeSecret are further annotation keys.
	AlternativeConfigMap, AlternativeSecret string
	// IgnoreConfigMaps and IgnoreSecrets exclude a kind of source.
	IgnoreConfigMaps, IgnoreSecrets bool
	// Port serves /metrics, /healthz and /readyz.
	Port    int
	Cluster Cluster
	// Help and Version request only that output.
	Help, Version bool
	// Warnings are about flags without effect.
	Warnings []string
}

// Cluster is a cluster other than the pod's own, zero for the pod's own.
type Cluster struct {
	Server, Token, Username, Password     string
	CAFile, ClientCertFile, ClientKeyFile string
	Insecure                              bool
}

// MaxDelay is the maximum time continuous changes can delay a rollout, which the original did
// not limit: ten periods, but at most a minute unless the period itself is longer.
func (o Options) MaxDelay() time.Duration {
	return max(o.Quiet, min(10*o.Quiet, time.Minute))
}

// Usage is what --help prints.
const Usage = `kubernetes-reloader: roll the workloads of a namespace when the ConfigMaps and
Secrets that they name change. This is Lockstep, running as a replacement for the original.

Options:
  --namespace                         namespace to watch                                   [required]
  --configmap                         ConfigMap that keeps the digests                     [required]
  --coalesce-period                   milliseconds of quiet before a workload is rolled    [default: 5000]
  --alternative-configmap-annotation  further annotation that names ConfigMaps
  --alternative-secret-annotation     further annotation that names Secrets
  --ignored-config-resource-types     v1.ConfigMap or v1.Secret, several allowed
  --port                              port of /metrics, /healthz and /readyz               [default: $PORT, then 8080]
  --server, -s                        URL of the API server (default: that of the pod)
  --token                             bearer token for --server
  --username, --password              basic credentials for --server
  --certificate-authority, --cacert   CA file for --server
  --client-certificate, --cert        client certificate file for --server
  --client-key, --key                 client key file for --server
  --insecure-skip-tls-verify          do not check the certificate of --server
  --help, --version
`

// Parse reads a command line of the original.
func Parse(args []string, lookup func(string) (string, bool)) (Options, error) {
	given := split(args)
	o := Options{
		Namespace: given.last("namespace"), StateName: given.last("configmap"),
		AlternativeConfigMap: given.last("alternative-configmap-annotation"),
		AlternativeSecret:    given.last("alternative-secret-annotation"),
		Cluster: Cluster{
			Server: given.last("server"), Token: given.last("token"),
			Username: given.last("username"), Password: given.last("password"),
			CAFile: given.last("certificate-authority"), ClientCertFile: given.last("client-certificate"),
			ClientKeyFile: given.last("client-key"), Insecure: given.isTrue("insecure-skip-tls-verify"),
		},
		Help: given.isTrue("help"), Version: given.isTrue("version"),
	}
	if o.Help || o.Version {
		return o, nil
	}
	return o, errors.Join(o.readRequired(), o.readQuiet(given), o.readPort(given, lookup), o.readTypes(given))
}

func (o *Options) readRequired() error {
	var missing []string
	if o.Namespace == "" {
		missing = append(missing, "namespace")
	}
	if o.StateName == "" {
		missing = append(missing, "configmap")
	}
	if len(missing) > 0 {
		return fmt.Errorf("missing required arguments: %s", strings.Join(missing, ", "))
	}
	return nil
}

func (o *Options) readQuiet(given arguments) error {
	o.Quiet = 5 * time.Second
	text := given.last("coalesce-period")
	if text == "" {
		return nil
	}
	ms, err := strconv.ParseFloat(text, 64)
	// Compared with >= and <= so NaN is refused too.
	if inRange := ms >= 0 && ms <= float64(24*time.Hour/time.Millisecond); err != nil || !inRange {
		return fmt.Errorf("--coalesce-period %q: want milliseconds, between 0 and a day", text)
	}
	o.Quiet = time.Duration(ms * float64(time.Millisecond))
	return nil
}

func (o *Options) readPort(given arguments, lookup func(string) (string, bool)) error {
	text := given.last("port")
	if text == "" {
		text, _ = lookup("PORT")
	}
	if text == "" {
		text = "8080"
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return fmt.Errorf("port %q: want a number up to 65535", text)
	}
	o.Port = int(port)
	return nil
}

func (o *Options) readTypes(given arguments) error {
	for _, name := range given["ignored-config-resource-types"] {
		switch name {
		case "v1.ConfigMap":
			o.IgnoreConfigMaps = true
		case "v1.Secret":
			o.IgnoreSecrets = true
		default:
			o.Warnings = append(o.Warnings, fmt.Sprintf("--ignored-config-resource-types %s: only v1.ConfigMap and v1.Secret have an effect", name))
		}
	}
	if _, set := given["resource-type"]; set {
		o.Warnings = append(o.Warnings, "--resource-type has no effect, as in the original")
	}
	if o.IgnoreConfigMaps && o.IgnoreSecrets {
		return errors.New("--ignored-config-resource-types leaves nothing to watch")
	}
	return nil
}
