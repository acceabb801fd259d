package labtest

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"

	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

const argoNamespace = "argo-rollouts"

// installArgoRollouts creates the Argo Rollouts kinds from the module that its controller is
// built from.
func (c *Cluster) installArgoRollouts(ctx context.Context) error {
	argo := c.programs[program.ArgoRollouts]
	files, err := argo.Files(argo.Assets[0])
	if err != nil {
		return err
	}
	for _, file := range files {
		manifest, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read a kind of Argo Rollouts: %w", err)
		}
		if _, err := c.api.create(ctx, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", string(manifest)); err != nil {
			return err
		}
	}
	_, err = c.api.create(ctx, "/api/v1/namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: "+argoNamespace+"}}")
	return err
}

func (c *Cluster) launchArgoRollouts(ctx context.Context) error {
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	health, metrics := strconv.Itoa(ports[0]), strconv.Itoa(ports[1])
	err = c.spawn(program.ArgoRollouts,
		"--kubeconfig="+c.Kubeconfig(), "--namespace="+argoNamespace, "--leader-elect=false",
		"--healthzPort="+health, "--metricsport="+metrics,
	)
	if err != nil {
		return err
	}
	server := &api{server: "http://127.0.0.1:" + health, client: http.DefaultClient}
	return c.await(ctx, program.ArgoRollouts, func(ctx context.Context) error {
		if _, err := server.get(ctx, "/healthz"); err != nil {
			return err
		}
		// The API server serves a new kind only some time after it was created.
		_, err := c.api.get(ctx, "/apis/argoproj.io/v1alpha1/rollouts?limit=1")
		return err
	})
}
