package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// addCanaries adds what a canary needs: a node on which pods seem to run, Argo
// Rollouts and Helm. Nobody waits for them before the first chapter.
func (st *stage) addCanaries(ctx context.Context) error {
	st.printer.line("Adding a fake node (KWOK), Argo Rollouts and Helm, which are built when they are missing.")
	began := time.Now()
	builder, err := program.NewBuilder(st.printer)
	if err != nil {
		return err
	}
	built, err := builder.Build(ctx, program.Helm)
	if err != nil {
		return err
	}
	st.helmPath = built[program.Helm].Path
	for _, component := range []labtest.Component{labtest.ArgoRollouts, labtest.KWOK} {
		if err := st.cluster.Add(ctx, component); err != nil {
			return err
		}
	}
	// The API server lists a new kind a moment after it accepts it.
	err = eventually(ctx, func(context.Context) (bool, string) {
		kind := rollout().GroupVersionKind()
		_, err := st.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		return err == nil, fmt.Sprint(err)
	})
	if err != nil {
		return err
	}
	st.printer.line(fmt.Sprintf("They are there after %.1f s. Pods now seem to run.", time.Since(began).Seconds()))
	return nil
}

// helm runs Helm on our application chart with values.
func (st *stage) helm(ctx context.Context, values string, args ...string) error {
	root, err := program.Root()
	if err != nil {
		return err
	}
	home := filepath.Join(st.cluster.Dir(), "helm")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	file := filepath.Join(home, "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, st.helmPath, append(args, filepath.Join(root, "charts", "app"), "-n", namespace, "-f", file)...)
	command.Env = append(cleanEnvironment(),
		"KUBECONFIG="+st.cluster.Kubeconfig(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("helm: %w\n%s", err, out)
	}
	return nil
}
