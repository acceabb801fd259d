package run

import (
	"errors"
	"fmt"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
)

// advised adds advice for the user to an error. It names flags of the command that uses this
// package.
func advised(err error) error {
	if _, missing := errors.AsType[*access.NoNamespaceError](err); missing {
		return fmt.Errorf("%w: create it, or name another one with --own-namespace", err)
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
	text := ". Accept that with \"lockstep release " + name + "\", or return to the later revision, for example with \"kubectl rollout undo\""
	if live {
		text = ". Pods that started after the change read the new content, whatever their revision. Accept that with \"lockstep release " + name +
			"\", or roll it out with \"lockstep roll " + name + "\""
	}
	if w.Owner != "" {
		text += ". " + w.Owner + " controls this workload and may overwrite its template: use lockstep.dev/strategy: evict, or follow the owner's kind with --kind"
	}
	return text
}
