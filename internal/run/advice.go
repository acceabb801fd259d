package run

import (
	"errors"
	"fmt"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
	"github.com/lockstep-dev/lockstep/internal/server"
)

// advised adds advice for the user to an error. It names flags of the command that uses this
// package.
func advised(err error) error {
	if _, missing := errors.AsType[*access.NoNamespaceError](err); missing {
		return fmt.Errorf("%w: make it, or name another one with --own-namespace", err)
	}
	if listening, ok := errors.AsType[*server.ListenError](err); ok {
		flag := "--metrics-addr"
		if listening.Pages == server.Probes {
			flag = "--probe-addr"
		}
		return fmt.Errorf("%w; name another address with %s, or 0 for none", err, flag)
	}
	if errors.Is(err, ledger.ErrForeignConfigMap) {
		return fmt.Errorf("%w: rename it, or set another --state-name", err)
	}
	return err
}

// revertedAdvice explains what a user can do about reverted versions. An image belongs to the
// revision; only another revision changes it.
func revertedAdvice(w *kube.Workload, live bool) string {
	name := fmt.Sprintf("%s/%s -n %s", w.Kind.Name(), w.Key.Name, w.Key.Namespace)
	text := ". Accept that with \"lockstep release " + name + "\", or go on to the later revision again, as \"kubectl rollout undo\" does"
	if live {
		text = ". Pods that started since the change read the new content whatever their revision. Accept that with \"lockstep release " + name +
			"\", or roll it out with \"lockstep roll " + name + "\""
	}
	if w.Owner != "" {
		text += ". " + w.Owner + " controls this workload and may write its template again: use lockstep.dev/strategy: evict, or follow the kind of the owner with --kind"
	}
	return text
}
