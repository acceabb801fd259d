package cli_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/agentkit"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestRotatedTokenOfTheAgent: the token in the agent's file is replaced, and the API server rejects the one before. The agent
// lists and watches again with the new one, without a restart.
func TestRotatedTokenOfTheAgent(t *testing.T) {
	t.Parallel()
	labtest.In(t, labtest.TierAll) // the client library reads the file again after most of a minute
	c := newCluster(t)
	c.configMap("app", map[string]string{"a": "1"})
	account := labtest.NewAccount(t, c.lab, c.namespace)
	account.Allow(t, labtest.Rule{Groups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}})
	account.RotateToken(t)
	line, kubeconfig := testkit.NewLine(t, account.Kubeconfig, c.lab.Server())
	a := agentkit.Run(t, "--kubeconfig="+kubeconfig, "--configmap="+c.namespace+"/app")
	a.WantFiles(map[string]string{"a": "1"})

	account.RotateToken(t)
	line.Cut() // an open watch outlives its token
	line.Mend()
	a.WantLog("Unauthorized")
	for _, value := range []string{"2", "3"} { // listed, and watched
		c.configMap("app", map[string]string{"a": value})
		a.WantFiles(map[string]string{"a": value})
	}
}
