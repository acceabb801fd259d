package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// explainOptions are the flags of "lockstep explain".
type explainOptions struct {
	kube         kubeOptions
	scope        scopeOptions
	output       outputOptions
	installation installationOptions
	watch        bool
}

func newExplain(env Environment) *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain KIND/NAME",
		Short: "Explain why a workload was rolled out, or why not, or which workloads use a ConfigMap or Secret",
		Long: `Explain the state of a workload: its inputs, with the delivered and the current version of each,
who changed them, what happens next, or what it waits for.

State is the controller's decision, from its record, with the same reason and message as in its
events and log. If the flags of the controller exclude the workload, it is NotWatched, KindOff,
ReloadOff or ImagesOff. If the controller hasn't decided yet, or an object changed after its
decision, the command applies the controller's rules to the objects that you can read, and marks the
result as an estimate.

For a ConfigMap or Secret, the command lists the workloads that follow it, with their states, and
its events.

If you lack permission to read an input, it is shown as "not visible to you", with the digest on
record. The current digest of a Secret also needs permission to read the installation key. You
don't have to repeat the controller's --kind here. -o name lists the inputs of a workload, or the
workloads that follow a source.`,
		Example: `  lockstep explain deployment/web -n shop
  lockstep explain sts/db -o yaml
  lockstep explain deploy/web -w
  lockstep explain configmap/app`,
		Args:              oneObject,
		ValidArgsFunction: completeTarget(&o.kube, &o.scope),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.installation.namespace = controllerNamespace(o.installation.namespace)
			return o.run(cmd.Context(), args[0], env)
		},
	}
	fs := cmd.Flags()
	o.kube.bindUser(fs)
	o.scope.bindOne(fs)
	o.output.bind(cmd)
	o.installation.bind(fs)
	o.installation.bindEstimates(fs)
	fs.BoolVarP(&o.watch, "watch", "w", false, "keep running, and explain again after each new decision of the controller")
	return cmd
}

// oneObject accepts only the name of one object.
func oneObject(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{errors.New("name one workload or source, such as deployment/web or configmap/app")}
	}
	return nil
}

func (o *explainOptions) run(ctx context.Context, name string, env Environment) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	within, err := o.scope.scope(&o.kube)
	if err != nil {
		return err
	}
	var t target
	c, err := o.installation.amongKinds(ctx, &o.kube, within.kinds, env, func(kinds []kube.Kind) (err error) {
		within.kinds = kinds
		t, err = targetAmong(name, within.Namespace, kinds)
		return err
	})
	if err != nil {
		return err
	}
	question := &explaining{Reader: o.installation.reader(c, within.kinds, env), target: t}
	if t.isWorkload {
		question.kind, _, _ = workloadAmong(name, within.Namespace, within.kinds)
	}
	if !o.watch {
		answer, err := question.ask(ctx)
		if err != nil {
			return err
		}
		return o.print(env, answer)
	}
	var before explained
	return ledger.WhenChanged(ctx, c, o.installation.namespace, func(ctx context.Context) error {
		answer, err := question.ask(ctx)
		if err != nil || reflect.DeepEqual(before, answer) {
			return err
		}
		if before != nil && o.output.isForUsers() {
			_, _ = fmt.Fprintln(env.Stdout)
		}
		before = answer
		return o.print(env, answer)
	})
}

// explained is an answer that can be printed for users.
type explained interface {
	// print writes it, and returns the state that colours its third line.
	print(to *bytes.Buffer, now time.Time, wide bool) ask.Report
	// objects are the inputs of a workload, or the users of a source.
	objects() []listed
}

// explaining is one run of the command.
type explaining struct {
	*ask.Reader

	target target
	// kind is that of a workload, if the target is one.
	kind kube.Kind
}

func (x *explaining) ask(ctx context.Context) (explained, error) {
	if x.target.isWorkload {
		answer, err := x.Workload(ctx, x.kind, x.target.ObjectKey)
		answer.Controller = advised(answer.Controller)
		return workloadAnswer{answer}, notFound(ctx, x.Client, x.target, err)
	}
	answer, err := x.Source(ctx, x.target.Namespace, input.ID{Kind: input.Kind(x.target.Kind), Name: x.target.Name})
	answer.Controller = advised(answer.Controller)
	return sourceAnswer{answer}, notFound(ctx, x.Client, x.target, err)
}

func (o *explainOptions) print(env Environment, answer explained) error {
	return o.output.list(env.Stdout, answer, answer.objects(), func(to io.Writer) error {
		var text bytes.Buffer
		state := answer.print(&text, env.Now(), o.output.isWide())
		return paint(to, text.Bytes(), func(line int) string {
			if stateLine := 2; line != stateLine || !usesColour(env) {
				return ""
			}
			return stateColour(state)
		})
	})
}
