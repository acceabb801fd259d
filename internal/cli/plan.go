package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
	"github.com/lockstep-dev/lockstep/internal/adapter/manifest"
	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// planOptions are the flags of "lockstep plan".
type planOptions struct {
	kube         kubeOptions
	scope        scopeOptions
	output       outputOptions
	installation installationOptions
	key          string
	files        manifestOptions
	auto         bool
	observe      bool
	exitCode     bool
}

func newPlan(env Environment) *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use:   "plan -f FILE|DIRECTORY|-...",
		Short: "Show which workloads would roll out if files were applied, and why",
		Long: `Show which workloads would roll out if files were applied, and why.

The command merges the files with the cluster's objects as "kubectl apply" would, in their order,
and applies the controller's rules to each workload in the files and to each one that uses a
changed ConfigMap or Secret. It only reads: it doesn't even send a dry run. It assumes that quiet
windows have passed, and doesn't query registries.

The order matters. A pod template that comes after its ConfigMap delivers the change in the same
rollout. One that comes before it is rolled out twice, and the output marks it as
"roll by its own template, and once more".

Without permission to read the controller's record, its key or a Secret, the command compares
the files with the cluster's objects, assumes that hidden Secrets change, and marks the line as an
estimate. It never shows contents.

Without permission to read a workload in the files, the output marks it as "not known". Without
permission to list a kind of workload, the plan lacks those that use a changed object. In both
cases the command exits with 1, even with --exit-code, because the plan is incomplete.

Exit codes: 0 done; 1 failed or incomplete; 2 wrong usage. With --exit-code, 3 if pods of at least
one existing workload would restart: by a rollout or by evictions, by Lockstep or by a changed
template. A workload that waits, starts or refreshes its files doesn't count.`,
		Example: `  lockstep plan -f deploy/
  lockstep plan -R -f deploy/ --exit-code
  kustomize build . | lockstep plan -f - -n shop
  helm template web ./chart | lockstep plan -f - -o wide`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.installation.namespace = controllerNamespace(o.installation.namespace)
			return o.run(cmd.Context(), args, cmd.InOrStdin(), env)
		},
	}
	fs := cmd.Flags()
	o.kube.bindUser(fs)
	o.scope.bindOne(fs)
	fs.Lookup("namespace").Usage = "namespace of objects without one (default that of the kubeconfig's context)"
	o.files.bind(cmd)
	o.installation.bind(fs)
	fs.StringVar(&o.key, "key-name", ask.DefaultKey, "name of the Secret with the key for Secret digests")
	hide(fs, "key-name")
	fs.BoolVar(&o.auto, "auto", false, "the controller was started with --auto")
	fs.BoolVar(&o.observe, "observe", false, "the controller was started with --observe")
	fs.BoolVar(&o.exitCode, "exit-code", false, "exit with 3 if a workload would roll out")
	o.output.bind(cmd)
	return cmd
}

func (o *planOptions) run(ctx context.Context, args []string, stdin io.Reader, env Environment) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	if err := o.files.add(args); err != nil {
		return err
	}
	within, err := o.scope.scope(&o.kube)
	if err != nil {
		return err
	}
	found, err := o.files.read(manifest.Reader{}, stdin, env)
	if err != nil {
		return usageError{err}
	}
	if len(found.Objects) == 0 {
		return usageError{errNoObjects}
	}
	c, err := o.kube.client()
	if err != nil {
		return err
	}
	heard, _, err := o.installation.reader(c, within.kinds, env).Heard(ctx, within.Namespace)
	if err != nil {
		return err
	}
	with := ask.PlanOptions{
		Serves: heard.Serves, Stop: heard.Stop,
		Client: c, Kinds: kube.AllKinds(within.kinds, heard.Serves.Kinds), Namespace: within.Namespace, Now: env.Now(),
		Record: ledger.NewReading(c, heard.Own.Namespace, heard.Own.State), Installation: o.installation.namespace,
		Defaults: settings.Defaults{Auto: o.auto, Observe: o.observe},
	}
	if err := o.addKey(ctx, c, &with); err != nil {
		return err
	}
	plan, err := ask.PlanOf(ctx, with, found.Objects)
	if _, wrong := errors.AsType[*manifest.Error](err); wrong {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	workloads := listedOf(plan.Workloads, func(w ask.PlannedWorkload) listed { return listed{w.Namespace, w.Workload} })
	if err := o.output.list(env.Stdout, plan, workloads, func(to io.Writer) error { return printPlan(to, plan, o.output.isWide()) }); err != nil {
		return err
	}
	if plan.Partial {
		return errPartialPlan
	}
	if o.exitCode && slices.ContainsFunc(plan.Workloads, func(w ask.PlannedWorkload) bool { return w.Would.Restarts() }) {
		return errWouldRoll
	}
	return nil
}

// errPartialPlan: a plan without some workloads must not look like one in which they don't roll.
var errPartialPlan = errors.New("the plan is incomplete: it lacks workloads that are not visible to you")

// errWouldRoll is the answer of "plan --exit-code", and not a failure.
var errWouldRoll = errors.New("a workload would roll out")

// errNoObjects: empty input must not look like a successful plan.
var errNoObjects = errors.New("the files contain no objects: did the command that writes them fail?")

// addKey reads the installation key. Without it, Secret digests are made with another key, which
// is good enough to compare them with each other.
func (o *planOptions) addKey(ctx context.Context, c client.Client, with *ask.PlanOptions) error {
	key, err := access.ReadInstallationKey(ctx, c, o.installation.namespace, o.key)
	with.KeyKnown = err == nil
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		key = make([]byte, 32)
		_, err = rand.Read(key)
	}
	with.Hashers = kube.NewHashers(key)
	return err
}

// printPlan writes the plan for users.
func printPlan(to io.Writer, p ask.Plan, wide bool) error {
	var err error
	tell := func(format string, args ...any) { err = errors.Join(err, say(to, format, args...)) }
	switch {
	case len(p.Workloads) > 0:
		err = printPlanned(to, p.Workloads, wide)
	case p.Partial:
		tell("no workload that is visible to you would change")
	default:
		tell("no workload would change")
	}
	for _, s := range p.Sources {
		switch {
		case s.Change == ask.Refused:
			tell("%s in namespace %s is immutable: the API server would refuse this change; give the new content a new name", s.Source, s.Namespace)
		case s.Users == 0 && s.Change != ask.Unchanged:
			tell("%s in namespace %s: %s, and no workload uses it", s.Source, s.Namespace, s.Change)
		case s.Change == ask.Assumed:
			tell("%s in namespace %s is not visible to you: assumed to change", s.Source, s.Namespace)
		}
		if s.Spread != nil {
			tell("%s in namespace %s: %s", s.Source, s.Namespace, plannedSpread(*s.Spread))
		}
	}
	if len(p.Others) > 0 {
		tell("%s", others(p.Others))
	}
	for _, note := range p.Notes {
		tell("%s", note)
	}
	return err
}

// plannedSpread describes how a change would reach the workloads.
func plannedSpread(s ask.PlannedSpread) string {
	words := fmt.Sprintf("%d workloads would roll", s.Rolls)
	if s.AtMost == 1 {
		return words + ", one after the other"
	}
	if s.Steps {
		words += ": 1 first, then 2, then 4 and so on, each step after the previous one is healthy"
	}
	if s.First != "" {
		words += "; the first is " + s.First
	}
	if s.AtMost > 0 {
		words += fmt.Sprintf("; at most %d at the same time", s.AtMost)
	}
	return words
}

func printPlanned(to io.Writer, all []ask.PlannedWorkload, wide bool) error {
	table := commandline.NewColumns(to, 3)
	columns := []string{"NAMESPACE", "WORKLOAD", "WOULD", "REASON", "BECAUSE"}
	if wide {
		columns = append(columns, "RULE")
	}
	table.Row(columns...)
	for _, w := range all {
		because := w.Because
		if w.Estimate {
			because += " (estimate)"
		}
		cells := []string{w.Namespace, w.Workload, string(w.Would), dashed(string(w.Reason)), because}
		if wide {
			cells = append(cells, dashed(w.Rule))
		}
		table.Row(cells...)
	}
	return table.End()
}

// others counts the irrelevant objects, in one line.
func others(counts map[string]int) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	return "other objects, which don't restart workloads: " + strings.Join(parts, ", ")
}
