package access

import (
	"context"
	"fmt"
	"slices"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// Account is a service account.
type Account struct{ Namespace, Name string }

// String is the account's user name.
func (a Account) String() string { return "system:serviceaccount:" + a.Namespace + ":" + a.Name }

// groups are those of every service account in the namespace.
func (a Account) groups() []string {
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + a.Namespace, "system:authenticated"}
}

// reviewsAtATime limits the concurrent requests to the API server.
const reviewsAtATime = 8

// Review queries the API server for the permissions that an account lacks. The caller needs
// permission to create SubjectAccessReviews.
func Review(ctx context.Context, c Reviewer, account Account, permissions []Permission) (missing []Permission, err error) {
	missing, err = reviewEach(c, permissions, func(permission Permission) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: account.String(), Groups: account.groups(), ResourceAttributes: permission.attributes(),
		}}
		err := c.Create(ctx, review)
		return review.Status.Allowed, err
	})
	if err != nil {
		return nil, fmt.Errorf("check the permissions of %s: %w", account, err)
	}
	return missing, nil
}

// ReviewOwn queries the API server for the permissions that the client's own user lacks. Every
// user may ask that.
func ReviewOwn(ctx context.Context, c Reviewer, permissions []Permission) (missing []Permission, err error) {
	missing, err = reviewEach(c, permissions, func(permission Permission) (bool, error) { return allowed(ctx, c, permission) })
	if err != nil {
		return nil, fmt.Errorf("check your permissions: %w", err)
	}
	return missing, nil
}

// reviewEach asks for all permissions, a few at a time.
func reviewEach(c Reviewer, permissions []Permission, allowed func(Permission) (bool, error)) (missing []Permission, err error) {
	denied, problems := make([]bool, len(permissions)), make([]error, len(permissions))
	slots := make(chan struct{}, reviewsAtATime)
	var asking sync.WaitGroup
	permissions = slices.Clone(permissions)
	for i, permission := range permissions {
		permission = permission.named(c.RESTMapper())
		permissions[i] = permission
		asking.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			granted, err := allowed(permission)
			denied[i], problems[i] = !granted, err
		})
	}
	asking.Wait()
	// They are alike: one permission is missing for all of them, or the API server is
	// unreachable.
	if first := slices.IndexFunc(problems, func(err error) bool { return err != nil }); first >= 0 {
		return nil, problems[first]
	}
	for i, permission := range permissions {
		if denied[i] {
			missing = append(missing, permission)
		}
	}
	return missing, nil
}
