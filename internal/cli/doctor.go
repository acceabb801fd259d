package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/installation"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/feature/doctor"
)

// doctorOptions are the flags of "lockstep doctor".
type doctorOptions struct {
	kube         kubeOptions
	installation installationOptions
	output       outputOptions
	images       imagesOptions
	namespace    string
	timeout      time.Duration
}

func newDoctor(env Environment) *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check an installation and its workloads, and suggest fixes",
		Long: `Check an installation and the workloads that it follows, and suggest fixes. The command checks

    the Kubernetes release, and the clocks
    the controller: its permissions, leader, caches and record
    the registries of the images that workloads follow
    annotations: invalid values and contradictions
    references to objects that don't exist
    containers that would run as root although runAsNonRoot forbids it
    workloads without a readiness probe, whose failures Lockstep can't always see
    other reloaders on the same workloads

It reads the controller's flags from its Deployment, and doesn't write anything. Of ConfigMaps and
Secrets it reads only the metadata, except for the controller's record and key. If you lack a
permission for a check, the result is "unknown", and the output names the permission.

docs/help/doctor.md explains every check.

Exit codes: 0 no problems, perhaps warnings; 1 a problem, or a check that could not be run;
2 wrong usage, or no cluster.`,
		Example: `  lockstep doctor
  lockstep doctor -n shop -o json
  lockstep doctor --controller-namespace tools --context staging`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.installation.namespace = controllerNamespace(o.installation.namespace)
			return o.run(cmd.Context(), env)
		},
	}
	fs := cmd.Flags()
	o.kube.bindUser(fs)
	o.installation.bind(fs)
	o.output.bind(cmd)
	fs.StringVarP(&o.namespace, "namespace", "n", "", "check only the workloads in this namespace (default those that the controller watches)")
	fs.StringArrayVar(&o.images.plainHTTP, "plain-http-registry", nil, "a registry to query without TLS, as HOST:PORT, in addition to those of the controller's flags; may be repeated")
	fs.StringArrayVar(&o.images.authorities, "registry-ca", nil, "additional trusted certificates for a registry, as HOST:PORT=FILE (PEM); may be repeated")
	fs.DurationVar(&o.timeout, "timeout", 30*time.Second, "maximum time for all checks")
	return cmd
}

// doctorAnswer is the output of the command.
type doctorAnswer struct {
	Namespace string         `json:"namespace"`
	Checks    []doctor.Check `json:"checks"`
}

func (o *doctorOptions) run(ctx context.Context, env Environment) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	if o.timeout <= 0 {
		return usageError{fmt.Errorf("--timeout %s: must be positive", o.timeout)}
	}
	if _, err := o.images.hosts(); err != nil {
		return usageError{err}
	}
	with, err := o.options(env)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("not within %s", o.timeout))
	defer cancel()
	facts, err := doctor.Gather(ctx, with)
	if err != nil {
		return err
	}
	answer := doctorAnswer{Namespace: o.installation.namespace, Checks: doctor.Decide(facts)}
	checks := listedOf(answer.Checks, func(c doctor.Check) listed { return listed{name: string(c.Name)} })
	err = o.output.list(env.Stdout, answer, checks, func(to io.Writer) error { return printChecks(to, env, answer.Checks) })
	return errors.Join(err, verdict(answer.Checks))
}

func (o *doctorOptions) options(env Environment) (doctor.Options, error) {
	config, err := o.kube.config()
	if err != nil {
		return doctor.Options{}, err
	}
	raw, err := access.NewRaw(config)
	if err != nil {
		return doctor.Options{}, clusterError{err}
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return doctor.Options{}, clusterError{fmt.Errorf("make the client: %w", err)}
	}
	with := doctor.Options{
		Client: c, Raw: raw, Namespace: o.installation.namespace, State: o.installation.state, Lease: o.installation.lease,
		Version: env.Version, Now: env.Now, Nearest: commandline.Nearest, Elsewhere: ", with --controller-namespace", Understand: understand,
		Ping: func(ctx context.Context, host string, configured installation.Configured) error {
			return o.ping(ctx, env, host, configured)
		},
	}
	if o.namespace != "" {
		with.Watched = []string{o.namespace}
	}
	return with, nil
}

// ping queries a registry as the controller would, except for certificates that only its pod
// has.
func (o *doctorOptions) ping(ctx context.Context, env Environment, host string, configured installation.Configured) error {
	images := o.images
	images.plainHTTP = slices.Concat(images.plainHTTP, configured.PlainHTTP)
	hosts, err := images.hosts()
	if err != nil {
		return err
	}
	return registry.NewClient(registry.Options{Hosts: hosts, UserAgent: "lockstep/" + env.Version}).Ping(ctx, host)
}

// verdict is an error when the command has to fail.
func verdict(all []doctor.Check) error {
	problems, unknown := doctor.Failed(all)
	var words []string
	if problems > 0 {
		words = append(words, counted(problems, "problem"))
	}
	if unknown > 0 {
		words = append(words, counted(unknown, "check")+" could not be run")
	}
	if len(words) == 0 {
		return nil
	}
	return errors.New(strings.Join(words, ", "))
}

// printChecks writes the checks for users: the finding, the details, then the advice.
func printChecks(to io.Writer, env Environment, all []doctor.Check) error {
	var text bytes.Buffer
	var colours []string
	table := commandline.NewColumns(&text, 3)
	line := func(c doctor.Check, first, second, third string) {
		colours = append(colours, checkColour(c.Result))
		table.Row(first, second, third)
	}
	for _, c := range all {
		line(c, string(c.Name), string(c.Result), c.Found)
		for _, detail := range c.Details {
			line(c, "", "", "- "+detail)
		}
		if c.Do != "" {
			line(c, "", "", "do: "+c.Do)
		}
	}
	if err := table.End(); err != nil {
		return err
	}
	return paint(to, text.Bytes(), func(i int) string {
		if !usesColour(env) || i >= len(colours) {
			return ""
		}
		return colours[i]
	})
}

func checkColour(r doctor.Result) string {
	switch r {
	case doctor.Problem:
		return colourStuck
	case doctor.Warning, doctor.Unknown:
		return colourWaits
	case doctor.OK:
	}
	return ""
}
