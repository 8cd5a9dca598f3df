# Der Satz über einem Auftrag. Die Werte sind die von en.ftl.

lock = { $pay } auf { $source } sperren, bis ein Geheimnis gezeigt wird; dafür mindestens { $receive } auf { $destination } an { $payout } erhalten; Rückzahlung nach etwa { refund-time }.

lock-without-terms = { $pay } auf { $source } sperren, bis ein Geheimnis gezeigt wird; dafür mindestens { $receive } auf { $destination } an { $payout } erhalten; die Bedingungen einer Rückzahlung sind nicht bekannt.

refund-time = { $unit ->
    [seconds] { $plural ->
        [one] { $count } Sekunde
       *[other] { $count } Sekunden
    }
    [minutes] { $plural ->
        [one] { $count } Minute
       *[other] { $count } Minuten
    }
    [hours] { $plural ->
        [one] { $count } Stunde
       *[other] { $count } Stunden
    }
   *[days] { $plural ->
        [one] { $count } Tag
       *[other] { $count } Tagen
    }
}
