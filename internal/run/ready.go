package run

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/server"
)

// ready is the response of /readyz.
func (p *parts) ready() server.Readiness {
	if problem := p.keyProblem.Load(); problem == nil || *problem != nil {
		return server.Readiness{Checks: []server.Check{keyCheck(problem)}}
	}
	all := append(p.cache.Status(), p.ownershipStatus()...)
	if p.options.rollsOut() {
		all = append(all, p.records.Status())
	}
	if !p.options.IsIdle() {
		all = append(all, p.stops.Status())
	}
	missing, known := p.permissions.Missing()
	missing = slices.DeleteFunc(slices.Clone(missing), func(r access.Permission) bool {
		return slices.ContainsFunc(all, func(s mirror.Sync) bool { return s.NotInstalled() && s.Resource == r.Follows })
	})
	ready := Readiness(all, p.absent()...)
	for _, kind := range kube.Off(p.options.Scope.Kinds) {
		ready.Checks = append(ready.Checks, server.Check{Name: kind.ResourceName(""), OK: true, Detail: "off (--built-in-kinds)"})
	}
	// Without the namespaces, it isn't known what to follow.
	ready.OK = ready.OK && (!p.cache.ChoosesNamespaces() || p.cache.KnowsNamespaces())
	// Without the kill switch, an operator can't stop this process.
	ready.OK = ready.OK && !p.stops.Status().Forbidden()
	ready = withPermissions(ready, append(missing, p.missingToAttach()...), known)
	return withUnwritable(withNewerEntries(ready, p.records.TooNew()), p.records.Unwritable())
}

// missingLog logs each missing permission once, and once more when it is granted: /readyz shows
// them too, but few people look there while the process is ready.
func missingLog(log logr.Logger, status func() []mirror.Sync) func([]access.Permission) {
	said := map[string]bool{}
	return func(missing []access.Permission) {
		now := map[string]bool{}
		for _, permission := range missing {
			name := permission.String()
			// A kind that can't be listed has its own line, and may not be installed.
			works := func(s mirror.Sync) bool { return s.Resource == permission.Follows && s.Works() }
			if permission.Follows != "" && !said[name] && !slices.ContainsFunc(status(), works) {
				continue
			}
			now[name] = true
			if !said[name] {
				log.Error(nil, "a permission is missing", "permission", name, "neededFor", permission.Use)
			}
		}
		for name := range said {
			if !now[name] {
				log.Info("a missing permission is granted", "permission", name)
			}
		}
		said = now
	}
}

// absent are the roles that may have no resource: those of disabled features, and, where
// namespaces are selected by label, those of namespaces as long as none is selected.
func (p *parts) absent() []mirror.Role {
	var roles []mirror.Role
	if !p.options.Reload || p.cache.ChoosesNamespaces() {
		roles = append(roles, mirror.RoleSource)
	}
	if p.options.IsIdle() || p.cache.ChoosesNamespaces() {
		roles = append(roles, mirror.RoleWorkload)
	}
	if !p.options.rollsOut() {
		roles = append(roles, mirror.RoleRecord)
	}
	return roles
}

// withUnwritable lists the parts of the record that cannot be written. The others can be, so the
// process stays ready.
func withUnwritable(r server.Readiness, problems map[string]string) server.Readiness {
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		r.Checks = append(r.Checks, server.Check{Name: "record " + name, Detail: fmt.Sprintf(
			"%s: the versions delivered to its workloads are only in memory: %s", input.RecordUnwritable, problems[name])})
	}
	return r
}

// withNewerEntries lists the entries of the record that a newer program wrote. Their workloads
// aren't rolled out; all others are, so the process stays ready.
func withNewerEntries(r server.Readiness, keys []string) server.Readiness {
	if len(keys) == 0 {
		return r
	}
	const most = 5
	names := strings.Join(keys[:min(most, len(keys))], ", ")
	if len(keys) > most {
		names += ", …"
	}
	r.Checks = append(r.Checks, server.Check{Name: "record", Detail: fmt.Sprintf(
		"%s: a newer version of Lockstep wrote %d entries that this version can't read; Lockstep doesn't roll out their workloads until that version runs again: %s", input.RecordTooNew, len(keys), names)})
	return r
}

func keyCheck(problem *error) server.Check {
	c := server.Check{Name: "installation key", Detail: "waiting for the API server"}
	if problem != nil {
		c.Detail = (*problem).Error()
	}
	return c
}

// Readiness is true when everything that can be listed is listed, nothing is unreachable, and
// the record, at least one kind of source and one kind of workload work: a missing permission
// for one kind must not block the others. Absent roles don't need a resource.
func Readiness(all []mirror.Sync, absent ...mirror.Role) server.Readiness {
	works := map[mirror.Role]bool{}
	for _, role := range absent {
		works[role] = true
	}
	for _, s := range all {
		works[s.Role] = false
	}
	r := server.Readiness{OK: true}
	for _, s := range all {
		r.Checks = append(r.Checks, check(s))
		works[s.Role] = works[s.Role] || s.Works()
		if !s.Works() && !s.Forbidden() && !s.NotInstalled() {
			r.OK = false
		}
	}
	r.OK = r.OK && works[mirror.RoleSource] && works[mirror.RoleWorkload] && works[mirror.RoleRecord]
	return r
}

func check(s mirror.Sync) server.Check {
	c := server.Check{Name: s.Resource, OK: s.Works(), Detail: "followed"}
	switch {
	case s.Works():
	case s.NotInstalled():
		c.Detail = "not installed in this cluster"
	case s.Forbidden():
		c.Detail = "permission is missing: " + s.Err.Error()
	case s.Err != nil:
		c.Detail = s.Err.Error()
	default:
		c.Detail = "waiting for the first list"
	}
	return c
}

// withPermissions adds the missing permissions. Without a vital permission the process isn't
// ready, even if all watches work.
func withPermissions(r server.Readiness, missing []access.Permission, known bool) server.Readiness {
	switch {
	case !known:
		r.Checks = append(r.Checks, server.Check{Name: "permissions", Detail: "waiting for the API server"})
	case len(missing) == 0:
		r.Checks = append(r.Checks, server.Check{Name: "permissions", OK: true, Detail: "all write permissions are granted"})
	}
	for _, permission := range missing {
		r.OK = r.OK && !permission.Vital
		r.Checks = append(r.Checks, server.Check{Name: "permission to " + permission.String(), Detail: "permission is missing; it is needed for " + permission.Use})
	}
	return r
}
