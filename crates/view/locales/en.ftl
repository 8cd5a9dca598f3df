# The sentence above an order. Values: pay and receive are amounts, source and destination names of chains, payout is an address.
# count and unit say after how long a refund is possible.

decimal-sign = .

lock = Lock { $pay } on { $source } until a secret is shown; receive at least { $receive } on { $destination } at { $payout }; refund after about { refund-time }.

# Nothing that was verified binds the payout to the owner.
lock-for-promise = Lock { $pay } on { $source } until a secret is shown; the service promises at least { $receive } on { $destination } at { $payout }; refund after about { refund-time }.

# The refund key is not the owner's.
lock-without-refund = Lock { $pay } on { $source } until a secret is shown; receive at least { $receive } on { $destination } at { $payout }; only the service can refund, after about { refund-time }.

lock-for-promise-without-refund = Lock { $pay } on { $source } until a secret is shown; the service promises at least { $receive } on { $destination } at { $payout }; only the service can refund, after about { refund-time }.

# The payload states no terms, so nothing is known about a refund.
lock-without-terms = Lock { $pay } on { $source } until a secret is shown; the service promises at least { $receive } on { $destination } at { $payout }; the terms of a refund are not known.

refund-time = { $unit ->
    [seconds] { $plural ->
        [one] { $count } second
       *[other] { $count } seconds
    }
    [minutes] { $plural ->
        [one] { $count } minute
       *[other] { $count } minutes
    }
    [hours] { $plural ->
        [one] { $count } hour
       *[other] { $count } hours
    }
   *[days] { $plural ->
        [one] { $count } day
       *[other] { $count } days
    }
}
