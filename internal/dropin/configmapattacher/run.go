package configmapattacher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/feature/revisions"
	"github.com/lockstep-dev/lockstep/internal/run"
)

// Run replaces the program of that name: it attaches ConfigMaps to the newest ReplicaSet of a
// Rollout, and logs in JSON on standard output.
func Run(ctx context.Context, args []string, env run.Environment) int {
	in, err := Parse(args, env.Lookup, env.Stderr)
	log := attacherLog(env.Stdout, in.Level)
	var usage UsageError
	switch {
	case errors.As(err, &usage):
		return commandline.ExitFailed
	case err != nil:
		if code := ExitCode(err); code != commandline.ExitFailed {
			return code
		}
		return fatal(ctx, log, err)
	}
	env.HandToLibraries(logr.Discard())
	log.InfoContext(ctx, "starting "+Name, "version", cmp.Or(in.Version, env.Version))
	log.InfoContext(ctx, "attaching", "configmaps", names(in), "rollout", in.Rollout, "namespace", in.Namespace, "job", in.JobName)
	if err := attachAsBefore(ctx, in, env, log); err != nil {
		return fatal(ctx, log, err)
	}
	log.InfoContext(ctx, "done")
	return commandline.ExitOK
}

func attachAsBefore(ctx context.Context, in Invocation, env run.Environment, log *slog.Logger) error {
	config, err := attacherConfig(in.InCluster, env.Lookup)
	if err != nil {
		return err
	}
	c, err := access.NewDirectClient(config, []kube.Kind{kube.Rollout()})
	if err != nil {
		return err
	}
	attacher := &revisions.Attacher{Client: c, Report: func(o revisions.Outcome) {
		if o.Warning != "" {
			log.WarnContext(ctx, o.Warning, "configmap", o.Object.Name)
		}
		log.InfoContext(ctx, "attached", "configmap", o.Object.Name, "owners", strings.Join(o.Owners, ","))
	}, Waiting: func(object input.ID, message string) {
		log.DebugContext(ctx, "waiting: "+message, "configmap", object.Name)
	}}
	request := revisions.DefaultRequest()
	request.RequireReference, request.AsController, request.WaitForWorkload = false, true, true
	request.Objects = in.ConfigMaps
	request.Kind, request.Workload = kube.Rollout(), types.NamespacedName{Namespace: in.Namespace, Name: in.Rollout}
	err = nil
	if len(in.ConfigMaps) > 0 {
		err = attacher.Attach(ctx, request)
	}
	return errors.Join(append(in.Refused, err)...)
}

// attacherConfig finds the cluster as the original did, which never read KUBECONFIG.
func attacherConfig(inCluster bool, lookup func(string) (string, bool)) (*rest.Config, error) {
	if inCluster {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("use the pod's service account: %w", err)
		}
		return config, nil
	}
	for _, variable := range []string{"HOME", "USERPROFILE"} {
		home, _ := lookup(variable)
		file := filepath.Join(home, ".kube", "config")
		if _, err := os.Stat(file); home == "" || err != nil {
			continue
		}
		config, err := clientcmd.BuildConfigFromFlags("", file)
		if err != nil {
			return nil, fmt.Errorf("read kubeconfig %s: %w", file, err)
		}
		return config, nil
	}
	return nil, errors.New("find a kubeconfig: IS_IN_CLUSTER is false and there is no .kube/config in $HOME or %USERPROFILE%")
}

// attacherLog writes one JSON object per line with the keys level, msg and time.
func attacherLog(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch v := a.Value.Any().(type) {
		case slog.Level:
			return slog.String(slog.LevelKey, LevelName(v))
		case time.Time:
			return slog.String(slog.TimeKey, v.Format(time.RFC3339))
		}
		return a
	}}))
}

// fatal logs why the program fails, each cause on its own line.
func fatal(ctx context.Context, log *slog.Logger, err error) int {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		log.Log(ctx, LevelFatal, line)
	}
	return commandline.ExitFailed
}

func names(in Invocation) string {
	list := make([]string, len(in.ConfigMaps))
	for i, s := range in.ConfigMaps {
		list[i] = s.Name
	}
	return strings.Join(list, ",")
}
