package labtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// nodeManifest is a node that only exists in the API, with room for any test.
const nodeManifest = `
apiVersion: v1
kind: Node
metadata:
  name: fake-0
  labels: {type: kwok, kubernetes.io/hostname: fake-0}
  annotations: {kwok.x-k8s.io/node: fake}
status:
  allocatable: {cpu: "1000", memory: 1Ti, pods: "10000"}
  capacity: {cpu: "1000", memory: 1Ti, pods: "10000"}
`

// launchKWOK starts the scheduler and KWOK, and waits until its node is ready.
func (c *Cluster) launchKWOK(ctx context.Context) error {
	stages, err := kwokStages(c.programs[program.KWOK])
	if err != nil {
		return err
	}
	config := c.file("kwok.yaml")
	if err := os.WriteFile(config, stages, 0o600); err != nil {
		return fmt.Errorf("write stages: %w", err)
	}
	if _, err := c.api.create(ctx, "/api/v1/nodes", nodeManifest); err != nil {
		return err
	}
	if err := c.startScheduler(); err != nil {
		return err
	}
	// Without a lease to renew, the node would count as dead after 50 seconds, and its pods
	// would never be ready again.
	lease := "--node-lease-duration-seconds=40"
	if err := c.spawn(program.KWOK, "--kubeconfig="+c.Kubeconfig(), "--config="+config, "--manage-all-nodes", lease); err != nil {
		return err
	}
	return c.await(ctx, program.KWOK, c.nodeReady("fake-0"))
}

func (c *Cluster) startScheduler() error {
	return c.spawn(program.Scheduler, "--kubeconfig="+c.Kubeconfig(), "--leader-elect=false", "--secure-port=0")
}

// kwokStages joins the files that define the life cycle of a fake node and a fake pod.
func kwokStages(kwok program.Built) ([]byte, error) {
	var all [][]byte
	for _, pattern := range kwok.Assets {
		files, err := kwok.Files(pattern)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			stage, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("read stage: %w", err)
			}
			if filepath.Base(file) != "kustomization.yaml" {
				all = append(all, stage)
			}
		}
	}
	return bytes.Join(all, []byte("\n---\n")), nil
}

// nodeReady checks whether a node is ready for pods.
func (c *Cluster) nodeReady(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		answer, err := c.api.get(ctx, "/api/v1/nodes/"+name)
		if err != nil {
			return err
		}
		var node struct {
			Status struct {
				Conditions []struct{ Type, Status string }
			}
		}
		if err := json.Unmarshal(answer, &node); err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == "Ready" && condition.Status == "True" {
				return nil
			}
		}
		return fmt.Errorf("node %s is not ready", name)
	}
}
