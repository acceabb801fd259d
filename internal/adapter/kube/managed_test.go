package kube

import "testing"

// TestOwnsVersions: the versions are ours as long as we own the annotation or variable.
func TestOwnsVersions(t *testing.T) {
	t.Parallel()
	env := func(fields string) string {
		return `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:env":{"k:{\"name\":\"LOCKSTEP_INPUTS\"}":{` + fields + `},"k:{\"name\":\"OTHER\"}":{"f:value":{}}}}}}}}}`
	}
	for name, c := range map[string]struct {
		entry string
		want  bool
	}{
		"annotation":       {`{"f:spec":{"f:template":{"f:metadata":{"f:annotations":{".":{},"f:lockstep.dev/inputs":{}}}}}}`, true},
		"other annotation": {`{"f:spec":{"f:template":{"f:metadata":{"f:annotations":{".":{},"f:lockstep.dev/inputs-of-another":{}}}}}}`, false},
		"variable":         {env(`".":{},"f:name":{},"f:value":{}`), true},
		"name only":        {env(`".":{},"f:name":{}`), false},
		"not managed":      {`{"f:metadata":{}}`, false},
		"unreadable":       {`{"f:spec":`, false},
	} {
		if got := ownsVersions([]byte(c.entry)); got != c.want {
			t.Errorf("%s: owned is %t, want %t", name, got, c.want)
		}
	}
}
