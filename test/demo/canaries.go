package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// addCanaries sets up what a canary needs, and waits until the API server lists the Rollout
// kind, a moment after it accepts it.
func (st *stage) addCanaries(ctx context.Context) error {
	var err error
	if st.helmPath, err = st.site.canaries(ctx, st); err != nil {
		return err
	}
	return eventually(ctx, func(context.Context) (bool, string) {
		err := st.knowsRollouts()
		return err == nil, fmt.Sprint(err)
	})
}

// knowsRollouts checks whether the API server serves Argo's Rollout kind.
func (st *stage) knowsRollouts() error {
	kind := st.rollout().GroupVersionKind()
	_, err := st.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	return err
}

// helm runs Helm on our application chart with values.
func (st *stage) helm(ctx context.Context, values string, args ...string) error {
	root, err := program.Root()
	if err != nil {
		return err
	}
	home := filepath.Join(st.dir, "helm")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	file := filepath.Join(home, "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, st.helmPath, append(args, filepath.Join(root, "charts", "app"), "-n", st.namespace, "-f", file)...)
	command.Env = append(st.environment(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("helm: %w\n%s", err, out)
	}
	return nil
}
